"""ResourceClaimTemplates for pods that are served by claims that Lamina generates."""
