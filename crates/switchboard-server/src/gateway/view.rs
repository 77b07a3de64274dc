//! What the clients of one endpoint get: everything, or what a profile includes.
//!
//! A view filters lists and names through its [`Offers`], and announces only changes of servers that its clients see.
//! When the configuration changes a profile, its view changes with it, also for clients that are connected.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard::internal::profile::Profile;
use switchboard::service::Changes;
use switchboard::{Event, Host, ListKind, ServerName, SharedJson};
use switchboard_config::files::Folders;
use switchboard_config::policy::ProfileEntry;
use switchboard_config::resolve::Config;
use switchboard_protocol::Method;
use switchboard_protocol::types::method::{LoggingMessage, Notification as _};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use super::offers::Offers;
use super::relay::named;

/// What some clients get.
pub(super) struct View {
    pub(super) offers: Offers,
    pub(super) changes: Changes,
}

impl View {
    pub(super) fn new(offers: Offers) -> Self {
        Self {
            offers,
            changes: Changes::default(),
        }
    }

    /// Announces that every list may have changed.
    fn announce_all(&self) {
        self.changes.tools();
        self.changes.prompts();
        self.changes.resources();
    }
}

/// The views of all profiles.
#[derive(Default)]
pub(super) struct Profiles {
    views: Mutex<HashMap<String, ProfileView>>,
    /// Tasks that pass events of the host on; they end with this.
    following: Mutex<JoinSet<()>>,
}

struct ProfileView {
    view: Arc<View>,
    /// The profile as it is configured; `None` if it was removed or cannot be used.
    entry: Option<ProfileEntry>,
}

impl Profiles {
    /// Announces what changes in the host to the clients of a view.
    pub(super) fn follow(&self, view: View) -> Arc<View> {
        let view = Arc::new(view);
        let mut following = self
            .following
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        following.spawn(follow(Arc::clone(&view)));
        view
    }

    pub(super) fn has(&self, name: &str) -> bool {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.get(name).is_some_and(|view| view.entry.is_some())
    }

    /// The view of a profile; one without any server if the profile does not exist.
    pub(super) fn view(&self, host: &Host, name: &str) -> Arc<View> {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = views.get(name) {
            return Arc::clone(&known.view);
        }
        let nothing = Arc::new(Profile::nothing(name));
        Arc::new(View::new(Offers::of_profile(host.clone(), nothing)))
    }

    /// Replaces all profiles.
    pub(super) fn set(&self, host: &Host, config: &Config, folders: &Folders) {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, known) in views.iter_mut() {
            if config.profile(name).is_none() {
                known.replace(None, Profile::nothing(name));
            }
        }
        for entry in &config.profiles {
            let (usable, profile) = match Profile::new(entry, config, folders) {
                Ok(profile) => (Some(entry.clone()), profile),
                Err(reason) => {
                    tracing::warn!(profile = entry.name, reason, "a profile cannot be used");
                    (None, Profile::nothing(&entry.name))
                }
            };
            if let Some(known) = views.get_mut(&entry.name) {
                known.replace(usable, profile);
                continue;
            }
            let offers = Offers::of_profile(host.clone(), Arc::new(profile));
            let view = ProfileView {
                view: self.follow(View::new(offers)),
                entry: usable,
            };
            views.insert(entry.name.clone(), view);
        }
    }
}

impl ProfileView {
    fn replace(&mut self, entry: Option<ProfileEntry>, profile: Profile) {
        let is_changed = self.entry != entry;
        self.entry = entry;
        self.view.offers.set_profile(Arc::new(profile));
        if is_changed {
            self.view.announce_all();
        }
    }
}

/// Announces what changes in the host to the clients of a view.
async fn follow(view: Arc<View>) {
    let (offers, changes) = (&view.offers, &view.changes);
    let mut events = offers.host.server_events();
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => {
                // Something may have been missed.
                view.announce_all();
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        let is_meant = |server: &ServerName| offers.has_server(server);
        match event {
            Event::CatalogChanged { server, list } if is_meant(&server) => match list {
                ListKind::Tools => changes.tools(),
                ListKind::Prompts => changes.prompts(),
                ListKind::Resources | ListKind::Templates => changes.resources(),
            },
            Event::StateChanged { server, .. } | Event::Removed { server } if is_meant(&server) => {
                view.announce_all();
            }
            Event::ResourceUpdated { server, uri } if is_meant(&server) => {
                changes.resource(&offers.exposed_uri(&server, &uri).await);
            }
            Event::Notification {
                server,
                method,
                params,
            } if is_meant(&server) => {
                let params = params.as_ref().map(SharedJson::raw);
                match Method::from_name(&method) {
                    Some(Method::LogMessage) => {
                        let Ok(message) = LoggingMessage::decode_params(params) else {
                            continue;
                        };
                        match &offers.transparent {
                            Some(_) => changes.log(&message),
                            None => changes.log(&named(&server, message)),
                        }
                    }
                    Some(Method::ElicitationComplete) => changes.other(&method, params),
                    // With several servers, clients cannot tell what it is about.
                    None if offers.transparent.is_some() => changes.other(&method, params),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
