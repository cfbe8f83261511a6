//! The house rules, as tests: how crates may depend on each other, how large a file may grow, where
//! `unsafe` may stand, which licences come in, and that documents say what is there.

mod arrows;
mod documents;
mod licences;
mod outbound;
mod promises;
mod sources;
mod suite;
mod tree;
