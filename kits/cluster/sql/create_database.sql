-- Creates a database for one test. The template is template0, because no session can be connected to it.
CREATE DATABASE "{name}" TEMPLATE template0
