-- Accounts of a new cluster: none of ours is its superuser.
-- The image of PostgreSQL runs this file once, when the volume is new; elsewhere, run it with psql as an administrator.
\set owner_password `cat "${SECRETS:-/run/secrets}/owner_password"`
\set service_password `cat "${SECRETS:-/run/secrets}/service_password"`

-- Brings the schema to the database, and owns it.
CREATE ROLE minutebook_owner LOGIN PASSWORD :'owner_password';
-- Reads and writes rows: daemons, workers and the API.
CREATE ROLE minutebook LOGIN PASSWORD :'service_password';

CREATE DATABASE minutebook OWNER minutebook_owner TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE minutebook FROM PUBLIC;
GRANT CONNECT ON DATABASE minutebook TO minutebook;

\connect minutebook
GRANT USAGE ON SCHEMA public TO minutebook;
ALTER DEFAULT PRIVILEGES FOR ROLE minutebook_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO minutebook;
ALTER DEFAULT PRIVILEGES FOR ROLE minutebook_owner IN SCHEMA public
    GRANT USAGE, SELECT ON SEQUENCES TO minutebook;
