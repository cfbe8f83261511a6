//! An ordinary user: the same probes and the same limits, without control groups.

#[path = "../limits/cases/mod.rs"]
#[macro_use]
mod cases;
mod guide;
mod isolation;

every_case!(support::Caller::User);
