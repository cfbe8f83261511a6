//! Escapes: every probe inside must be held, and the same probes outside must not; every hardening
//! step is missed when it is missing; nothing is started where isolation cannot be had.

mod canary;
mod closed;
mod columns;
mod cross;
mod kept;
mod mutation;
mod probes;
mod races;
mod standing;
mod warm;
mod workspace;
