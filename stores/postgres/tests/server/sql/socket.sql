-- Says where the server listens on this machine.
SELECT current_setting('unix_socket_directories'), current_setting('port')
