//! `--expires TIME`: how long something lasts, as the time of its end.

use glovebox_model::{Code, Error, Millis, Result, Stage};
use jiff::{SignedDuration, Timestamp};

pub(crate) fn end(expires: Option<Millis>, now: Timestamp) -> Result<Option<Timestamp>> {
    let end = expires.map(|it| {
        i64::try_from(it.get())
            .ok()
            .and_then(|ms| now.checked_add(SignedDuration::from_millis(ms)).ok())
            .ok_or_else(|| {
                let message = format!("`--expires {it}` is later than any date");
                Error::new(Code::InvalidArgument, Stage::Parse, message)
                    .hint("say less, such as `--expires 30d`")
            })
    });
    end.transpose()
}
