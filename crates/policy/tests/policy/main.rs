//! Policy seen from outside: layers in, a profile, a refusal or an explanation out.

#![allow(clippy::result_large_err, clippy::unwrap_used)]

mod config;
mod environment;
mod explanation;
mod fixture;
mod layers;
mod narrowing;
mod refusal;
mod tier;
