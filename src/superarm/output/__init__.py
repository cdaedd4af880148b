"""What people get to see, and how their frames are read: table · labels: names of rows and columns · pages: HTML."""
