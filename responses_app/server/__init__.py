"""What `bin/serve` needs: installing, the embedded Postgres, the front door, and an end that leaves nothing behind."""
