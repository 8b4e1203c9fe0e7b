"""Programs behind `bin/serve`: installation, embedded Postgres, HTTP server, process supervision."""
