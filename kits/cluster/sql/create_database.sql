-- Makes a database of its own for a test. The template is the one that nobody can be connected to.
CREATE DATABASE "{name}" TEMPLATE template0
