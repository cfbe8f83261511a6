//! Server-sent events, out of pieces that are cut anywhere.

/// Longer than any event of ours: an output event holds at most a journal's chunk, in base64.
const EVENT_MOST: usize = 8 << 20;

/// One event as it came.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: String,
}

#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The start of a line that has not ended.
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed now belongs to it.
    returned: bool,
    event: Raw,
    /// Whether there was a `data` line.
    filled: bool,
}

/// It is no stream of events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Garbled(pub(crate) &'static str);

impl Parser {
    /// The events that this piece completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<Raw>, Garbled> {
        let mut events = Vec::new();
        for &byte in piece {
            let returned = std::mem::replace(&mut self.returned, byte == b'\r');
            match byte {
                b'\n' if returned => {}
                b'\n' | b'\r' => events.extend(self.end_line()?),
                _ => self.line.push(byte),
            }
            if self.line.len() + self.event.data.len() > EVENT_MOST {
                return Err(Garbled("an event is too long"));
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Result<Option<Raw>, Garbled> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8(line).map_err(|_| Garbled("an event is not UTF-8"))?;
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return Ok(std::mem::take(&mut self.filled).then_some(event));
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => value.clone_into(&mut self.event.id),
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if std::mem::replace(&mut self.filled, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // A comment, which keeps the connection alive, or something newer than us.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ": hello\n\nid: 1\nevent: state\ndata: {\"a\":\ndata: 1}\n\n\
                        id:2\r\nevent: output\r\ndata: ż\r\n\r\nretry: 5\n\nid: 3\ndata\n\n";

    fn all(pieces: &[&[u8]]) -> Vec<Raw> {
        let mut parser = Parser::default();
        pieces
            .iter()
            .flat_map(|piece| parser.push(piece).unwrap())
            .collect()
    }

    #[test]
    fn a_stream_cut_anywhere_is_the_same() {
        let whole = all(&[TEXT.as_bytes()]);
        let shown: Vec<_> = whole
            .iter()
            .map(|it| (it.id.as_str(), it.kind.as_str(), it.data.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("1", "state", "{\"a\":\n1}"),
                ("2", "output", "ż"),
                ("3", "", "")
            ]
        );
        for cut in 0..TEXT.len() {
            let (start, end) = TEXT.as_bytes().split_at(cut);
            assert_eq!(all(&[start, end]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn half_an_event_is_none_and_garbage_is_an_error() {
        assert!(all(&[b"id: 1\ndata: x\n"]).is_empty());
        assert!(Parser::default().push(b"data: \xff\n").is_err());
        let endless = vec![b'x'; EVENT_MOST + 1];
        assert!(Parser::default().push(&endless).is_err());
    }
}
