//! What goes over the wire, where it differs from the nouns of the model. The description in
//! `/openapi.json` is made from these types, and requests are checked against it.

mod amount;
mod call;
mod exec;
mod input;
mod legacy;
mod overrides;
mod page;
mod program;
mod text;

pub(crate) use call::is_reserved;
pub(crate) use exec::ExecRequest;
pub(crate) use legacy::LegacyExec;
pub(crate) use page::Page;
use text::{Destination, EnvPattern, GuestDir, ImageName, InputPath, Plain};
pub(crate) use text::{Free, Id};
