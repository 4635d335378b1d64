"""What is learning worth to a search on families that it has never seen?"""
