//! Hostile files: the path corpus, races, trees made to be hard, and what an exec leaves behind.

mod artifacts;
mod layout;
mod paths;
mod place;
mod races;
mod resolver;
mod trees;
