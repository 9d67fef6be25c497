"""How long the agent's decisions about GPU time take, whatever containers write into their files."""
