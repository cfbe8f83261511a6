//! Paths that rules deny, against programs whose words say nothing of them: the sandbox denies them.

mod ground;
mod reads;
mod writes;
