//! `glovebox retrieve`.

use glovebox_api::Target;
use glovebox_engine::{RetrieveRequest, Retrieved};
use glovebox_model::Result;

use crate::args::{Global, RetrieveArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::size;
use crate::render::{self, one_line, printable};
use crate::stdout;

pub(crate) fn run(global: &Global, args: RetrieveArgs) -> Result<Exit> {
    let request = RetrieveRequest {
        max_bytes: args.max_bytes.map(|it| it.get()),
        max_text_bytes: args.max_text_bytes.map(|it| it.get()),
        timeout_ms: args.timeout.map(|it| it.get()),
        ..RetrieveRequest::of(args.url)
    };
    let client = Context::new(global).api()?;
    let retrieved: Retrieved = client.post_slowly(Target::new("/v1/retrieve"), &request)?;
    if global.json {
        stdout::json(&retrieved)?;
    } else if let Some(text) = &retrieved.text {
        let mut text = printable(text);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        stdout::text(&text)?;
    }
    if !global.json {
        tell(global, &retrieved);
    }
    Ok(match retrieved.error_code {
        None => Exit::SUCCESS,
        Some(_) => Exit::FAILURE,
    })
}

/// Where it came from, or why it did not.
fn tell(global: &Global, retrieved: &Retrieved) {
    if let (Some(code), Some(refusal)) = (retrieved.error_code, &retrieved.error) {
        render::note(&format!("{code}: {}", one_line(&refusal.message)));
        if let Some(hint) = &refusal.hint {
            render::hint(&one_line(hint));
        }
        return;
    }
    if global.quiet {
        return;
    }
    let url = one_line(retrieved.final_url.as_deref().unwrap_or_default());
    let status = retrieved.status_code.unwrap_or_default();
    let bytes = size(retrieved.bytes_read);
    render::note(&format!("{status} from `{url}`, {bytes}"));
    if retrieved.truncated {
        render::note("the text was cut; `--max-text-bytes` asks for more");
    }
}
