//! The Model Context Protocol as others speak it: the official clients, the inspector and the
//! conformance suite against the built binary, over standard input and output and over HTTP; and
//! whoever means no good.

mod agent;
mod clients;
mod conformance;
mod ground;
mod hostile;
mod inspector;
mod malice;
mod policy;
mod proxy;
mod tools;
mod wire;
