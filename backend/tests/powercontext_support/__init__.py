"""What the tests of the PowerContext backend share: a scripted server, a real one, and a real server's recorded JSON."""
