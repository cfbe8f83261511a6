//! Skills as people and agents call them: the shipped ones with their own examples, others from a
//! directory, here and through a server.

mod command;
mod ground;
mod server;
mod shipped;
