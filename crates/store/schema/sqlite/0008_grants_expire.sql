-- When a grant ends, and when it was last used: both are the truth, as `used` and `revoked_at` are. One
-- without an end was made before grants had one, and is in force no longer.
ALTER TABLE grants ADD COLUMN expires_at INTEGER;
ALTER TABLE grants ADD COLUMN last_used_at INTEGER;
