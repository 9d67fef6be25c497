"""What every loop over the lab's API needs: a cache fed by watches, a work queue, events, and reading plain objects."""
