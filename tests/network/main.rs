//! The one way out: what gets through, what does not, and what is never seen.

mod agreed;
mod asked;
mod broker;
mod bypass;
mod callers;
mod canary;
mod containers;
mod ground;
mod inspection;
mod live;
mod processes;
mod pulled;
mod unaware;
mod wire;
