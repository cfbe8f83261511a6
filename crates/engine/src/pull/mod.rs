//! Images from a registry: what the name means is looked up, and what it is made of is read through
//! the importer that distrusts every image. Everything goes through `egress`, as anybody, without an
//! account.

mod manifest;
mod reference;
mod registry;
mod stream;

use std::cell::RefCell;

use glovebox_egress::{Host, PrivateTargets, Scheme};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_workspace::image::{
    ImageFormat, ImageName, ImageRecord, ImageSource, Images, Progress,
};

use crate::network::EgressRuntime;
use registry::Registry;
use stream::{Fault, Layout};

pub use reference::ImageReference;

/// How a registry is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryTransport {
    Tls,
    /// Only to a registry that the operator lists in `[network] private`.
    PlainHttp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullProgress {
    Asking,
    Fetching { bytes: u64, of: u64 },
    Importing(Progress),
}

/// What is told while an image comes, by two who do not know of each other.
struct Telling<'p> {
    progress: RefCell<&'p mut dyn FnMut(PullProgress)>,
    came: RefCell<u64>,
    of: u64,
    fault: RefCell<Fault>,
}

impl Telling<'_> {
    fn tell(&self, progress: PullProgress) {
        (self.progress.borrow_mut())(progress);
    }

    fn came(&self, bytes: u64) {
        let came = self.came.borrow().saturating_add(bytes);
        self.came.replace(came);
        self.tell(PullProgress::Fetching {
            bytes: came,
            of: self.of,
        });
    }

    fn failed(&self, error: Error) {
        self.fault.replace(Some(error));
    }
}

/// Pulls an image and gives it a name. Nothing of it is there before all of it is.
pub fn pull(
    outside: &EgressRuntime,
    reference: &ImageReference,
    transport: RegistryTransport,
    images: &Images,
    name: &ImageName,
    progress: &mut dyn FnMut(PullProgress),
) -> Result<ImageRecord> {
    let scheme = match transport {
        RegistryTransport::Tls => Scheme::Https,
        RegistryTransport::PlainHttp => {
            ensure_listed(outside, reference)?;
            Scheme::Http
        }
    };
    progress(PullProgress::Asking);
    let mut client = outside.client()?.clone();
    // Nothing private but the registry itself, wherever it sends us.
    let usual = match scheme {
        Scheme::Https => 443,
        Scheme::Http => 80,
    };
    client.vetter.private = own_door(outside, reference, usual);
    let client = &client;
    let runtime = outside.runtime();
    let mut registry = Registry::new(client, reference, scheme);
    let found = runtime.block_on(registry.find(reference.which()))?;
    let telling = Telling {
        of: stream::total(&found),
        progress: RefCell::new(progress),
        came: RefCell::new(0),
        fault: RefCell::new(None),
    };
    let layout = Layout::new(registry, runtime, found, &telling)?;
    let source = ImageSource::Archive(Box::new(layout));
    let imported = images.import(source, name, ImageFormat::OciLayout, &mut |step| {
        telling.tell(PullProgress::Importing(step));
    });
    imported.map_err(|error| telling.fault.take().unwrap_or(error))
}

fn address_of(registry: &str, usual: u16) -> (&str, u16) {
    match registry.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(0)),
        _ => (registry, usual),
    }
}

/// The registry itself, if the operator lists it, and no other private place.
fn own_door(outside: &EgressRuntime, reference: &ImageReference, usual: u16) -> PrivateTargets {
    let (host, port) = address_of(reference.registry(), usual);
    let Ok(own) = Host::parse(host) else {
        return PrivateTargets::none();
    };
    match outside.vetter().private.contains(&own, port) {
        true => PrivateTargets::parse([format!("{own}:{port}")]).unwrap_or_default(),
        false => PrivateTargets::none(),
    }
}

/// In the clear anybody on the way could exchange the image, so the operator has to have said that
/// there is nobody.
fn ensure_listed(outside: &EgressRuntime, reference: &ImageReference) -> Result<()> {
    let registry = reference.registry();
    let (host, port) = address_of(registry, 80);
    let listed = Host::parse(host).is_ok_and(|it| outside.vetter().private.contains(&it, port));
    match listed {
        true => Ok(()),
        false => Err(Error::new(
            Code::PolicyDenied,
            Stage::Resolve,
            format!("`{registry}` is not spoken to in the clear"),
        )
        .hint(format!(
            "leave out `--plain-http`, or list it: `[network] private = [\"{host}:{port}\"]`"
        ))),
    }
}
