//! Whether a simulation tells the truth: what it says of a program is what the program does.

mod bound;
mod census;
mod corpus;
mod escape;
mod gates;
mod ground;
mod judged;
mod network;
mod quiet;
mod rerun;
mod secrets;
mod seen;
mod settle;
mod story;
mod town;
mod traced;
mod truth;
