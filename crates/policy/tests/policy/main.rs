//! Policy seen from outside: layers in, a profile, a refusal or an explanation out.

#![allow(clippy::result_large_err, clippy::unwrap_used)]

mod cases;
mod certain;
mod choice;
mod config;
mod containers;
mod credentials;
mod denied;
mod environment;
mod explanation;
mod fixture;
mod gate_laws;
mod gates;
mod layers;
mod narrowing;
mod network;
mod refusal;
mod rules;
mod scripts;
mod standing;
mod tier;
mod workspace;
