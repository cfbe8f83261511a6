//! `glovebox image`.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use glovebox_engine::{EgressRuntime, PullProgress, RegistryTransport, pull as fetch};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_workspace::Dir;
use glovebox_workspace::image::{
    ImageDigest, ImageFormat, ImageName, ImageRecord, ImageSource, Images, Progress,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{
    Global, ImageCommand, ImageFormatArg, ImageRmArgs, ImageVerb, ImportArgs, PullArgs,
};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, count, size};
use crate::paint::Paint;
use crate::stop::Stop;
use crate::table::{Cell, Table};
use crate::{render, stdout};

/// How often a person is told how far it is.
const PACE: Duration = Duration::from_millis(100);

#[derive(Debug, Serialize)]
struct Listed {
    items: Vec<ImageRecord>,
}

#[derive(Debug, Serialize)]
struct Gone {
    name: ImageName,
    digest: ImageDigest,
    files_removed: bool,
}

pub(crate) fn run(global: &Global, command: ImageCommand) -> Result<Exit> {
    match command.verb {
        ImageVerb::Import(args) => import(global, &args),
        ImageVerb::Pull(args) => pull(global, &args),
        ImageVerb::Ls(_) => list(global),
        ImageVerb::Rm(args) => remove(global, &args),
    }
}

fn images(global: &Global) -> Result<Images> {
    let state = Context::new(global).place()?.state_dir()?;
    Images::open(&opened(state.path(), "state directory")?)
}

fn opened(path: &Path, what: &str) -> Result<Dir> {
    Dir::open_trusted(path).map_err(|error| {
        let shown = path.display();
        invalid(format!("cannot open the {what} `{shown}`")).caused_by(error)
    })
}

fn import(global: &Global, args: &ImportArgs) -> Result<Exit> {
    let stop = Stop::listen()?;
    let source = source(&args.source, &stop)?;
    let format = match args.format {
        ImageFormatArg::Auto => ImageFormat::Auto,
        ImageFormatArg::Oci => ImageFormat::OciLayout,
        ImageFormatArg::Docker => ImageFormat::DockerSave,
        ImageFormatArg::Rootfs => ImageFormat::Rootfs,
    };
    let images = images(global)?.until(stop.pressed());
    let mut bar = Bar::for_people(global);
    let record = images.import(source, &args.name, format, &mut |progress| {
        if let Some(bar) = &mut bar {
            bar.show(progress);
        }
    });
    if let Some(bar) = &mut bar {
        bar.clear();
    }
    tell(global, &record?)
}

fn pull(global: &Global, args: &PullArgs) -> Result<Exit> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => args.reference.short_name()?,
    };
    let transport = match args.plain_http {
        true => RegistryTransport::PlainHttp,
        false => RegistryTransport::Tls,
    };
    let outside = EgressRuntime::open(&Context::new(global).config()?)?;
    let images = images(global)?.until(Stop::listen()?.pressed());
    let mut bar = Bar::for_people(global);
    let mut show = |progress| {
        if let Some(bar) = &mut bar {
            bar.show_pull(progress);
        }
    };
    let record = fetch(
        &outside,
        &args.reference,
        transport,
        &images,
        &name,
        &mut show,
    );
    if let Some(bar) = &mut bar {
        bar.clear();
    }
    tell(global, &record?)
}

fn tell(global: &Global, record: &ImageRecord) -> Result<Exit> {
    if global.json {
        stdout::json(record)?;
        return Ok(Exit::SUCCESS);
    }
    stdout::text(&format!("{}\n", record.digest))?;
    if !global.quiet {
        let (name, bytes) = (&record.name, size(record.size_bytes));
        let files = count(record.files, "file", "files");
        render::note(&format!(
            "`{name}` has {files}, {bytes}: `glovebox run --image {name} -- CMD`"
        ));
        if record.skipped > 0 {
            let skipped = count(
                record.skipped,
                "device or FIFO was",
                "devices and FIFOs were",
            );
            render::note(&format!("{skipped} left out"));
        }
    }
    Ok(Exit::SUCCESS)
}

fn source<'s>(path: &Path, stop: &'s Stop) -> Result<ImageSource<'s>> {
    if path == Path::new("-") {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            return Err(invalid("standard input is a terminal, not an image")
                .hint("`docker save NAME | glovebox image import - --name NAME`"));
        }
        let own = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)
            .map_err(|errno| invalid("standard input cannot be read").caused_by(errno))?;
        return Ok(archive(stop.over(own.into())?));
    }
    let shown = path.display();
    let failed = |error| invalid(format!("cannot read the image `{shown}`")).caused_by(error);
    let file = std::fs::File::open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.is_dir() {
        true => opened(path, "image").map(ImageSource::Folder),
        false => Ok(archive(stop.over(file)?)),
    }
}

fn archive<'s>(reader: impl Read + 's) -> ImageSource<'s> {
    ImageSource::Archive(Box::new(reader))
}

fn list(global: &Global) -> Result<Exit> {
    let place = Context::new(global).place()?;
    // Nothing is made only to be read.
    let items = match place.state.join("images").is_dir() {
        true => images(global)?.ls()?,
        false => Vec::new(),
    };
    if global.json {
        stdout::json(&Listed { items })?;
    } else if global.quiet {
        let names: String = items.iter().map(|it| format!("{}\n", it.name)).collect();
        stdout::text(&names)?;
    } else if items.is_empty() {
        render::note("there is no image; `glovebox image pull` or `import` brings one in");
    } else {
        let table = table(&items, Timestamp::now());
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

fn table(items: &[ImageRecord], now: Timestamp) -> Table<6> {
    const DIGEST: usize = "sha256:".len() + 12;
    let mut table = Table::new(["NAME", "DIGEST", "ARCH", "FILES", "SIZE", "AGE"]);
    for record in items {
        let digest: String = record.digest.to_string().chars().take(DIGEST).collect();
        table.push([
            Cell::from(record.name.as_str()),
            Cell::from(digest),
            Cell::from(record.architecture.as_deref().unwrap_or("-")),
            Cell::from(record.files.to_string()),
            Cell::from(size(record.size_bytes)),
            Cell::from(age(record.imported_at, now)),
        ]);
    }
    table
}

fn remove(global: &Global, args: &ImageRmArgs) -> Result<Exit> {
    let images = images(global)?;
    let mut exit = Exit::SUCCESS;
    for name in &args.names {
        match images.rm(name) {
            Ok(removed) if global.json => {
                stdout::json(&Gone {
                    name: removed.name,
                    digest: removed.digest,
                    files_removed: removed.files_removed,
                })?;
            }
            Ok(removed) => {
                stdout::text(&format!("{}\n", removed.name))?;
                if !global.quiet {
                    render::note(match removed.files_removed {
                        true => "removed",
                        false => "the name is gone; its files stay for another name",
                    });
                }
            }
            // Alone it is the command's own error; among others it is one of them.
            Err(error) if args.names.len() == 1 => return Err(error),
            Err(error) => {
                render::error(&error, global.json);
                exit = Exit::FAILURE;
            }
        }
    }
    Ok(exit)
}

/// One line on a person's terminal that changes.
#[derive(Debug, Default)]
struct Bar {
    last: Option<Instant>,
    layer: String,
}

impl Bar {
    fn for_people(global: &Global) -> Option<Self> {
        let is_shown = !global.quiet && !global.json && std::io::stderr().is_terminal();
        is_shown.then(Self::default)
    }

    fn show_pull(&mut self, progress: PullProgress) {
        match progress {
            PullProgress::Asking => self.line("asking the registry"),
            PullProgress::Fetching { bytes, of } => {
                if self.is_time() {
                    self.line(&format!("fetching: {} of {}", size(bytes), size(of)));
                }
            }
            // It is told by what comes.
            PullProgress::Importing(Progress::Copying) => {}
            PullProgress::Importing(step) => self.show(step),
        }
    }

    /// Often, so not every time.
    fn is_time(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= PACE)
    }

    fn show(&mut self, progress: Progress) {
        let line = match progress {
            Progress::Copying => "copying the archive".to_owned(),
            Progress::Layer { number, of } => {
                self.layer = format!("layer {number} of {of}: ");
                self.layer.clone()
            }
            Progress::Unpacking { entries, bytes } => {
                if !self.is_time() {
                    return;
                }
                let entries = count(entries, "entry", "entries");
                format!("{}{entries}, {}", self.layer, size(bytes))
            }
            Progress::Keeping => "writing it to disk".to_owned(),
        };
        self.line(&line);
    }

    fn line(&mut self, line: &str) {
        self.last = Some(Instant::now());
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
    }

    fn clear(&mut self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}
