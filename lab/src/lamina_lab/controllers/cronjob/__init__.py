"""The CronJob controller: a Job for each time of a schedule."""
