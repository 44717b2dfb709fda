"""The scripted side of an episode: player, world, the person who approves, and the observer."""
