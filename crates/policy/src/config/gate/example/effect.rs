//! Effects in the short form of examples.

use glovebox_model::{
    Approach, ByteString, Deed, Effect, FileFacts, FileOp, FileRead, FileWrite, NetCode,
    NetworkRequest, ProcessSpawn, Result, Spoken,
};
use toml::de::DeTable;

use crate::config::document::{Document, Key, Node, entries};
use crate::config::section::unknown_key;
use crate::config::value::{read_bool, read_strings, read_whole, refuse};

const EFFECTS_MAX: usize = 100;
const KEYS: [&str; 11] = [
    "write", "remove", "rename", "read", "request", "spawn", "size", "diff", "method", "path",
    "refused",
];

pub(super) fn read_effects(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Vec<Effect>> {
    let what = "an array of tables such as `{ write = \"src/a.py\" }`";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    if list.len() > EFFECTS_MAX {
        let message = format!("`effects` holds more than {EFFECTS_MAX} effects");
        return Err(document.error(node.span(), message));
    }
    let read = |(seq, item): (u64, &Node<'_>)| {
        let Some(table) = item.get_ref().as_table() else {
            return Err(document.expected(key, item, what));
        };
        let (deed, refused) = read_deed(document, item, table)?;
        Ok(Effect {
            seq,
            at: jiff::Timestamp::UNIX_EPOCH,
            deed,
            would_succeed: !refused,
            failure_reason: None,
            provisional: false,
            simulated_result: None,
        })
    };
    (1..).zip(list.iter()).map(read).collect()
}

fn read_deed(
    document: &Document<'_>,
    item: &Node<'_>,
    table: &DeTable<'_>,
) -> Result<(Deed, bool)> {
    let mut deed: Option<Deed> = None;
    let (mut size, mut diff, mut method, mut path) = (None, None, None, None);
    let mut refused = false;
    for (key, node) in entries(table) {
        let text = || {
            let text = node.get_ref().as_str();
            text.ok_or_else(|| document.expected(key, node, "a string"))
        };
        let file = || bytes(document, key, node, text()?);
        let found = match key.get_ref().as_ref() {
            "write" => written(FileOp::Created, None, file()?),
            "remove" => written(FileOp::Removed, None, file()?),
            "rename" => {
                let ends = read_bytes(document, key, node)?;
                let Ok([from, to]) = <[ByteString; 2]>::try_from(ends) else {
                    let message = "`rename` must hold two paths, the old one first";
                    return Err(document.error(node.span(), message));
                };
                written(FileOp::Renamed, Some(from), to)
            }
            "read" => Deed::FilesystemRead(FileRead { path: file()? }),
            "request" => requested(document, key, node, text()?)?,
            "spawn" => spawned(document, key, node)?,
            "size" => {
                size = Some(read_whole(document, key, node, 0..=u64::MAX >> 1)?);
                continue;
            }
            "diff" => {
                diff = Some(text()?.to_owned());
                continue;
            }
            "method" => {
                method = Some(text()?.to_owned());
                continue;
            }
            "path" => {
                path = Some(text()?.to_owned());
                continue;
            }
            "refused" => {
                refused = read_bool(document, key, node)?;
                continue;
            }
            _ => return Err(unknown_key(document, "in `effects`", key, &KEYS)),
        };
        if deed.replace(found).is_some() {
            let message = "the effect is two things at once";
            return Err(document
                .error(key.span(), message)
                .hint("write two effects"));
        }
    }
    let Some(mut deed) = deed else {
        let hint = "it is one of `write`, `remove`, `rename`, `read`, `request`, `spawn`";
        let message = "the effect does not say what is done";
        return Err(document.error(item.span(), message).hint(hint));
    };
    match &mut deed {
        Deed::FilesystemWrite(write) => {
            // Without a size a text is as long as what it adds.
            let length = diff.as_ref().map_or(0, |it: &String| it.len());
            let size = size.unwrap_or(u64::try_from(length).unwrap_or(u64::MAX));
            for side in [&mut write.before, &mut write.after].into_iter().flatten() {
                side.size = size;
            }
            write.diff = diff;
        }
        Deed::NetworkRequest(request) => {
            request.body_bytes = size.unwrap_or(0);
            (request.method, request.path) = (method, path);
        }
        Deed::FilesystemRead(_)
        | Deed::StateMutation(_)
        | Deed::ExternalApiCall(_)
        | Deed::ProcessSpawn(_) => {}
    }
    Ok((deed, refused))
}

fn bytes(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    text: &str,
) -> Result<ByteString> {
    ByteString::try_from(text).map_err(|why| refuse(document, key, text, node.span(), why))
}

fn read_bytes(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Vec<ByteString>> {
    let texts = read_strings(document, key, node)?;
    let read = |(text, _): (&str, _)| bytes(document, key, node, text);
    texts.into_iter().map(read).collect()
}

fn written(operation: FileOp, from: Option<ByteString>, path: ByteString) -> Deed {
    let facts = || FileFacts {
        kind: "file".to_owned(),
        size: 0,
        mode: 0o644,
        digest: None,
        attributes: None,
        target: None,
    };
    Deed::FilesystemWrite(FileWrite {
        operation,
        path,
        from,
        before: (operation != FileOp::Created).then(facts),
        after: (operation != FileOp::Removed).then(facts),
        diff: None,
        call: None,
    })
}

fn requested(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>, text: &str) -> Result<Deed> {
    let wrong = || refuse(document, key, text, node.span(), "is not `host:port`");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let at = (host.to_owned(), port.parse().map_err(|_| wrong())?);
    Ok(Deed::NetworkRequest(NetworkRequest::bare(
        Approach::Direct,
        Spoken::Tcp,
        at,
        NetCode::Ok,
    )))
}

fn spawned(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Deed> {
    let argv = read_bytes(document, key, node)?;
    let Some(program) = argv.first().cloned() else {
        let message = "`spawn` does not name a program";
        return Err(document.error(node.span(), message));
    };
    Ok(Deed::ProcessSpawn(ProcessSpawn {
        pid: 2,
        parent: 1,
        program,
        argv,
        argv_truncated: false,
        cwd: None,
    }))
}
