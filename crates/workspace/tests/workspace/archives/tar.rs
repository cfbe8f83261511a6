//! Tar archives written byte by byte, since writers refuse to write what matters here.

const BLOCK: usize = 512;

#[derive(Debug, Clone, Default)]
pub(crate) struct Tar(Vec<u8>);

/// One header. The checksum is always right: a wrong one would be refused for that alone.
#[derive(Debug, Clone)]
pub(crate) struct Head<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: u8,
    pub(crate) mode: u32,
    pub(crate) link: &'a [u8],
    /// None writes the true one.
    pub(crate) size: Option<[u8; 12]>,
}

impl<'a> Head<'a> {
    pub(crate) fn new(kind: u8, name: &'a [u8]) -> Self {
        Self {
            name,
            kind,
            mode: 0o644,
            link: b"",
            size: None,
        }
    }
}

impl Tar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn raw(mut self, head: &Head<'_>, contents: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        block[..head.name.len()].copy_from_slice(head.name);
        block[100..108].copy_from_slice(format!("{:07o}\0", head.mode).as_bytes());
        block[108..116].copy_from_slice(b"0000000\0");
        block[116..124].copy_from_slice(b"0000000\0");
        let size = format!("{:011o}\0", contents.len());
        let size = head.size.unwrap_or(size.as_bytes().try_into().unwrap());
        block[124..136].copy_from_slice(&size);
        block[136..148].copy_from_slice(b"14000000000\0");
        block[156] = head.kind;
        block[157..157 + head.link.len()].copy_from_slice(head.link);
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&block);
        self.0.extend_from_slice(contents);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    pub(crate) fn file(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        self.raw(&Head::new(b'0', name.as_bytes()), contents.as_ref())
    }

    pub(crate) fn mode(self, kind: u8, name: &str, mode: u32, contents: &str) -> Self {
        let head = Head {
            mode,
            ..Head::new(kind, name.as_bytes())
        };
        self.raw(&head, contents.as_bytes())
    }

    pub(crate) fn dir(self, name: &str) -> Self {
        self.mode(b'5', name, 0o755, "")
    }

    pub(crate) fn link(self, name: &str, target: &str) -> Self {
        self.to(b'2', name, target)
    }

    pub(crate) fn hard(self, name: &str, target: &str) -> Self {
        self.to(b'1', name, target)
    }

    fn to(self, kind: u8, name: &str, target: &str) -> Self {
        let head = Head {
            link: target.as_bytes(),
            ..Head::new(kind, name.as_bytes())
        };
        self.raw(&head, b"")
    }

    pub(crate) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let mut text = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let digits = |length: usize| length.to_string().len();
            let mut length = rest + digits(rest);
            length = rest + digits(length);
            text.extend_from_slice(format!("{length} {key}=").as_bytes());
            text.extend_from_slice(value);
            text.push(b'\n');
        }
        self.raw(&Head::new(b'x', b"pax"), &text)
    }

    /// With the mark at its end.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }

    pub(crate) fn cut(self) -> Vec<u8> {
        self.0
    }
}
