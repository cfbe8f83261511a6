//! A stream that others set the pace of: which bytes come out, and when, does not depend on what they
//! are. Who can choose what a [`Redactor`](crate::Redactor) reads, and sees when it passes that on, learns
//! from what it keeps back how a secret begins.

use std::fmt;

use zeroize::Zeroizing;

use crate::dumped::LINE_MOST;
use crate::meant::Place;
use crate::secrets::Secrets;

/// Of what is out already, for secrets that began in it.
const CONTEXT_LEAST: usize = 4096;

/// What waits is looked through together with what came out before it. A secret that is whole when its
/// first byte comes out is masked as a whole; of one that is not, what has not come out.
pub struct Window {
    secrets: Secrets,
    /// What is out and still looked at, and what waits.
    text: Zeroizing<Vec<u8>>,
    /// The secrets in it, unless something came since they were looked for.
    places: Option<Vec<Place>>,
    out: usize,
    /// Where the last secret ends that was told.
    told: usize,
    context: usize,
    masked: u64,
}

impl Window {
    pub(crate) fn of(secrets: Secrets) -> Self {
        // As far as a secret can reach, with colours and line breaks in it.
        let context = CONTEXT_LEAST.max(2 * secrets.longest() + LINE_MOST);
        Self {
            secrets,
            text: Zeroizing::default(),
            places: None,
            out: 0,
            told: 0,
            context,
            masked: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        if !bytes.is_empty() {
            self.places = None;
        }
    }

    /// How many bytes are not out yet.
    pub fn waiting(&self) -> usize {
        self.text.len() - self.out
    }

    /// How many bytes must be able to wait so that every secret that comes at once is found.
    pub fn reach(&self) -> usize {
        self.context
    }

    /// How many markers came out.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// Appends the next `count` bytes to `out`, without what is secret by all that has come.
    pub fn release(&mut self, count: usize, out: &mut Vec<u8>) {
        let end = self.text.len().min(self.out + count);
        let mut at = self.out.max(self.told.min(end));
        if at < end {
            let places = self.places.take().unwrap_or_else(|| self.search());
            for place in &places {
                if place.written.end <= at {
                    continue;
                }
                if place.written.start >= end {
                    break;
                }
                out.extend_from_slice(&self.text[at..place.written.start.max(at)]);
                // What overlaps is one.
                if place.written.start >= self.told {
                    out.extend_from_slice(self.secrets.marker(place.label).as_bytes());
                    self.masked += 1;
                }
                self.told = self.told.max(place.written.end);
                at = place.written.end.min(end);
            }
            out.extend_from_slice(&self.text[at..end]);
            self.places = Some(places);
        }
        self.out = end;
        self.forget();
    }

    fn search(&self) -> Vec<Place> {
        let from = self.reached();
        let mut places = self.secrets.places(&self.text[from..]);
        for place in &mut places {
            place.written.start += from;
            place.written.end += from;
        }
        places
    }

    /// Where that begins which a secret can reach from into what waits. A dump shows at the begin of
    /// its line.
    fn reached(&self) -> usize {
        let far = self.out.saturating_sub(self.context);
        let line = &self.text[far.saturating_sub(LINE_MOST)..far];
        let back = memchr::memrchr(b'\n', line).map_or(0, |at| line.len() - at - 1);
        far - back
    }

    /// What is out and too far behind.
    fn forget(&mut self) {
        if self.out < 2 * self.context {
            return;
        }
        let gone = self.reached();
        self.text.drain(..gone);
        self.out -= gone;
        self.told = self.told.saturating_sub(gone);
        for place in self.places.iter_mut().flatten() {
            place.written.start = place.written.start.saturating_sub(gone);
            place.written.end = place.written.end.saturating_sub(gone);
        }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("secrets", &self.secrets)
            .field("waiting", &self.waiting())
            .field("masked", &self.masked)
            .finish()
    }
}
