//! Limits, run into by root's sandboxes: each ends as the contract says, and a neighbour outside
//! notices nothing.

#[macro_use]
mod cases;

every_case!(support::Caller::Root);
