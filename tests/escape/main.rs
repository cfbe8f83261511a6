//! Escapes: every probe inside must be held, and the same probes outside must not; every hardening
//! step is missed when it is missing; nothing is started where isolation cannot be had.

mod closed;
mod cross;
mod mutation;
mod probes;
mod races;
mod workspace;
