//! Secrets kept out of whatever is written or shown: output while it streams, messages, records, file
//! names.
//!
//! A secret is found as it is and in the forms that programs give it without meaning to hide it:
//! in capital or small letters, base64 and base32 wherever it stands in what was encoded, lists and dumps
//! of its bytes, quoted for JSON, shells, Python and HTML, reversed, in UTF-16 and UTF-32, line by line,
//! wrapped, indented, with colours and backspaces in it, and with any of its characters written as
//! `%2D`, `&#45;`, `\\055` or `\\u002d`, also several times over. In its place stands `[secret NAME]`.
//! Everything else stays as it is, byte by byte.
//!
//! It is a guard against accidents, not against a program that wants to send a value out: `rot13`,
//! `gzip` or a space between any two letters are enough for that. What a program may reach at all is
//! what holds it.

mod dumped;
mod forms;
mod meant;
mod needles;
mod redactor;
#[cfg(test)]
mod reference;
mod secrets;
mod spelled;
mod stretch;
mod unfit;
mod vocabulary;
mod walk;
mod window;

pub use redactor::Redactor;
pub use secrets::Secrets;
pub use unfit::{LONGEST, SHORTEST, Unfit, Why};
pub use window::Window;
