"""Resource claims: those that pods get from templates, and the release of what no pod uses any longer."""
