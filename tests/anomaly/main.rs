//! What befalls a run from outside: kills, full disks, torn files.
