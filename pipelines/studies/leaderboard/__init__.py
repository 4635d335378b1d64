"""The methods of this project on its leaderboard, and the page and the picture of that."""
