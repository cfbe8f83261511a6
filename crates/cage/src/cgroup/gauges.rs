//! The files in which the kernel counts what a group uses. Held open, each costs one call to read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Stats;

#[derive(Debug)]
pub(super) struct Gauges {
    pub(super) cpu: Option<Gauge>,
    pub(super) memory_peak: Option<Gauge>,
    pub(super) pids_peak: Option<Gauge>,
    pub(super) oom_kills: Option<Gauge>,
    pub(super) pids_refused: Option<Gauge>,
    /// How many units of the processor's time are a microsecond.
    pub(super) cpu_scale: u64,
    /// Processes inside that are not the payload's.
    pub(super) own_pids: u64,
}

/// A number in a file of its own, or after a key at the start of a line.
#[derive(Debug)]
pub(super) struct Gauge {
    file: File,
    key: Option<&'static str>,
}

impl Gauge {
    pub(super) fn open(path: &Path, key: Option<&'static str>) -> Option<Self> {
        let file = File::open(path).ok()?;
        Some(Self { file, key })
    }

    /// One that can be reset, where the kernel lets us.
    pub(super) fn open_writable(path: &Path) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).ok();
        file.map(|file| Self { file, key: None })
            .or_else(|| Self::open(path, None))
    }

    pub(super) fn write(&self, text: &[u8]) -> bool {
        self.file.write_at(text, 0).is_ok()
    }

    fn read(&self) -> Option<u64> {
        // These files are short, and given whole in one read.
        let mut buffer = [0; 4096];
        let length = self.file.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..length]).ok()?;
        match self.key {
            None => text.trim().parse().ok(),
            Some(key) => text.lines().find_map(|line| {
                let (name, value) = line.split_once(' ')?;
                (name == key).then(|| value.trim().parse().ok())?
            }),
        }
    }
}

impl Gauges {
    pub(super) fn read(&self) -> Stats {
        let read = |gauge: &Option<Gauge>| gauge.as_ref().and_then(Gauge::read);
        Stats {
            cpu_us: read(&self.cpu).map(|used| used / self.cpu_scale),
            max_memory_bytes: read(&self.memory_peak),
            max_pids: read(&self.pids_peak).map(|peak| peak.saturating_sub(self.own_pids)),
            oom_kills: read(&self.oom_kills).unwrap_or(0),
            pids_refused: read(&self.pids_refused).unwrap_or(0),
        }
    }
}
