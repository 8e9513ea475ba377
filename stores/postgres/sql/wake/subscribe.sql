-- Hears what other processes make runnable.
LISTEN {channel}
