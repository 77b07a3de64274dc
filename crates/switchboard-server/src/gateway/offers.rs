//! What all servers offer, as one server would offer it, and the way back from an exposed name to its server.
//!
//! Tools and prompts get the names that a model sees (`mcp__server__tool`). A resource keeps its URI; if a server before
//! it in the order of names has the same one, it is exposed as `switchboard://server/URI`. In transparent mode there is
//! one server, and everything keeps its name.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use switchboard::internal::catalog::exposed::exposed_name;
use switchboard::internal::profile::Profile;
use switchboard::{Catalog, CatalogTool, Host, ListKind, Pages, ServerName, ServerState};
use switchboard_protocol::types::prompt::{ListPromptsResult, Prompt};
use switchboard_protocol::types::resource::{
    ListResourceTemplatesResult, ListResourcesResult, Resource, ResourceTemplate,
};
use switchboard_protocol::types::tool::Tool;
use switchboard_protocol::types::{self, Raw, RawObject};
use url::Url;

/// Scheme of resources whose own URI belongs to another server already.
const SCHEME: &str = "switchboard";
/// How long a client may cache a merged list that states no shorter time. Changes are announced.
const LIST_LIFETIME: Duration = Duration::from_secs(300);
/// Maximum length of the merged instructions, in bytes.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// What the servers of a host offer: to all clients, or to those of a profile.
pub(super) struct Offers {
    pub(super) host: Host,
    /// The only server, whose names are not changed.
    pub(super) transparent: Option<ServerName>,
    /// The profile of the clients, which changes with the configuration.
    profile: Option<RwLock<Arc<Profile>>>,
    /// The last list of tools.
    tools: Mutex<Option<ToolList>>,
}

/// A list of tools, and what it was made from.
struct ToolList {
    catalog: Arc<Catalog>,
    profile: Option<Arc<Profile>>,
    text: Arc<str>,
    /// Token cost of the definitions.
    tokens: u64,
    count: usize,
}

/// A merged list: its items as JSON, and how long a client may cache it.
pub(super) struct MergedList {
    pub(super) items: String,
    pub(super) lifetime: Duration,
}

/// A list of one server.
type ServerList = (ServerName, Arc<Pages>);

impl Offers {
    pub(super) fn new(host: Host, transparent: Option<ServerName>) -> Self {
        Self {
            host,
            transparent,
            profile: None,
            tools: Mutex::default(),
        }
    }

    /// What the clients of a profile get.
    pub(super) fn of_profile(host: Host, profile: Arc<Profile>) -> Self {
        Self {
            profile: Some(RwLock::new(profile)),
            ..Self::new(host, None)
        }
    }

    /// The profile of the clients; `None` if they get everything.
    pub(super) fn profile(&self) -> Option<Arc<Profile>> {
        let profile = self.profile.as_ref()?;
        let profile = profile.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&profile))
    }

    /// Replaces the profile.
    pub(super) fn set_profile(&self, profile: Arc<Profile>) {
        if let Some(place) = &self.profile {
            *place.write().unwrap_or_else(PoisonError::into_inner) = profile;
        }
    }

    /// Whether clients get anything of a server.
    pub(super) fn has_server(&self, server: &ServerName) -> bool {
        let profile = self.profile();
        let is_included = |profile: Arc<Profile>| profile.has_server(server.as_str());
        self.transparent.as_ref().is_none_or(|only| only == server)
            && profile.is_none_or(is_included)
    }

    /// The servers that can be used, by name.
    pub(super) fn servers(&self) -> Vec<ServerName> {
        let is_usable = |state: &ServerState| {
            matches!(
                state,
                ServerState::Connected | ServerState::Idle | ServerState::Lazy { .. }
            )
        };
        let statuses = self.host.statuses().into_iter();
        statuses
            .filter(|status| is_usable(&status.state) && self.has_server(&status.name))
            .map(|status| status.name)
            .collect()
    }

    /// Whether clients get a tool.
    pub(super) fn has_tool(&self, tool: &CatalogTool) -> bool {
        let only = self.transparent.as_ref();
        only.is_none_or(|only| tool.reference().server == *only)
            && self.profile().is_none_or(|profile| profile.has_tool(tool))
    }

    /// The name under which a client calls a tool.
    pub(super) fn tool_name<'t>(&self, tool: &'t CatalogTool) -> Cow<'t, str> {
        match (&self.transparent, self.profile()) {
            (Some(_), _) => tool.reference().tool.as_str().into(),
            (None, Some(profile)) => profile.name_of(tool).to_owned().into(),
            (None, None) => tool.exposed().as_str().into(),
        }
    }

    /// The name by which the host finds a tool.
    pub(super) fn host_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match (&self.transparent, self.profile()) {
            (Some(server), _) => format!("{server}/{name}").into(),
            (None, Some(profile)) => match profile.original(name) {
                Some(tool) => tool.to_owned().into(),
                None => name.into(),
            },
            (None, None) => name.into(),
        }
    }

    /// The tools as a JSON array.
    pub(super) fn tools(&self) -> Arc<str> {
        self.with_tools(|list| Arc::clone(&list.text))
    }

    /// The number of tools, and the tokens of their definitions.
    pub(super) fn tool_cost(&self) -> (usize, u64) {
        self.with_tools(|list| (list.count, list.tokens))
    }

    fn with_tools<T>(&self, read: impl FnOnce(&ToolList) -> T) -> T {
        let (catalog, profile) = (self.host.catalog(), self.profile());
        let is_current = |list: &&mut ToolList| {
            let is_same_profile = match (&list.profile, &profile) {
                (Some(of), Some(profile)) => Arc::ptr_eq(of, profile),
                (None, None) => true,
                _ => false,
            };
            is_same_profile && Arc::ptr_eq(&list.catalog, &catalog)
        };
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = known.as_mut().filter(is_current) {
            return read(list);
        }
        let tools: Vec<&CatalogTool> = catalog.iter().filter(|tool| self.has_tool(tool)).collect();
        let text = array(tools.iter().filter_map(|tool| self.tool_text(tool)));
        let (tokens, count) = (tools.iter().map(|tool| tool.tokens().0).sum(), tools.len());
        read(known.insert(ToolList {
            text: text.into(),
            tokens,
            count,
            catalog,
            profile,
        }))
    }

    /// A tool as JSON: the server's own definition, with the exposed name and the sanitized description.
    pub(super) fn tool_text(&self, tool: &CatalogTool) -> Option<String> {
        let definition = tool.definition();
        if self.transparent.is_some() && tool.field("inputSchema").is_some() {
            return Some(definition.as_str().to_owned());
        }
        let mut shown: Tool<'_> = types::decode(definition.raw()).ok()?;
        shown.name = self.tool_name(tool);
        if self.transparent.is_none() {
            shown.description = Some(tool.model_description().into_owned().into());
        }
        let schema = Raw::from(tool.input_schema());
        shown.input_schema = RawObject::try_from(schema).ok();
        Some(types::encode(&shown))
    }

    /// How long a client may cache the list of tools.
    pub(super) async fn tools_lifetime(&self) -> Duration {
        self.lifetime(ListKind::Tools, &self.lists(ListKind::Tools).await)
    }

    pub(super) async fn prompts(&self) -> MergedList {
        let lists = self.lists(ListKind::Prompts).await;
        let items = lists.iter().flat_map(|(server, pages)| {
            let shown = move |prompt: &Prompt<'_>| {
                let mut prompt = prompt.clone();
                prompt.name = self.prompt_name(server, &prompt.name).into();
                types::encode(&prompt)
            };
            pages.pages.iter().flat_map(move |page| {
                let page = types::decode::<ListPromptsResult<'_>>(page.raw()).ok();
                let prompts = page.iter().flat_map(|page| page.prompts.iter().map(shown));
                prompts.collect::<Vec<_>>()
            })
        });
        MergedList {
            items: array(items),
            lifetime: self.lifetime(ListKind::Prompts, &lists),
        }
    }

    fn prompt_name(&self, server: &ServerName, name: &str) -> String {
        match self.transparent {
            Some(_) => name.to_owned(),
            None => exposed_name(server.as_str(), name).as_str().to_owned(),
        }
    }

    /// The server and the own name of a prompt.
    pub(super) async fn find_prompt(&self, exposed: &str) -> Option<(ServerName, String)> {
        if let Some(server) = &self.transparent {
            return Some((server.clone(), exposed.to_owned()));
        }
        let lists = self.lists(ListKind::Prompts).await;
        for (server, pages) in &lists {
            for page in &pages.pages {
                let Ok(page) = types::decode::<ListPromptsResult<'_>>(page.raw()) else {
                    continue;
                };
                let mut prompts = page.prompts.iter();
                let found =
                    prompts.find(|prompt| self.prompt_name(server, &prompt.name) == exposed);
                if let Some(prompt) = found {
                    return Some((server.clone(), prompt.name.to_string()));
                }
            }
        }
        None
    }

    pub(super) async fn resources(&self) -> MergedList {
        let lists = self.lists(ListKind::Resources).await;
        let mut taken = std::collections::HashSet::new();
        let mut items = Vec::new();
        for (server, pages) in &lists {
            for_each_resource(pages, |resource| {
                let mut resource = resource.clone();
                if !taken.insert(resource.uri.to_string()) {
                    resource.uri = qualified(server, &resource.uri).into();
                }
                items.push(types::encode(&resource));
            });
        }
        MergedList {
            items: array(items.into_iter()),
            lifetime: self.lifetime(ListKind::Resources, &lists),
        }
    }

    pub(super) async fn templates(&self) -> MergedList {
        let lists = self.lists(ListKind::Templates).await;
        let items = lists.iter().flat_map(|(_, pages)| {
            pages.pages.iter().flat_map(|page| {
                let page = types::decode::<ListResourceTemplatesResult<'_>>(page.raw()).ok();
                let templates = page.iter().flat_map(|page| page.resource_templates.iter());
                templates.map(types::encode).collect::<Vec<_>>()
            })
        });
        MergedList {
            items: array(items),
            lifetime: self.lifetime(ListKind::Templates, &lists),
        }
    }

    /// The servers that may have a resource, the most likely first, and its URI there.
    pub(super) async fn find_resource(&self, exposed: &str) -> (Vec<ServerName>, String) {
        if let Some(server) = &self.transparent {
            return (vec![server.clone()], exposed.to_owned());
        }
        if let Some((server, uri)) = unqualified(exposed) {
            let servers = if self.has_server(&server) {
                vec![server]
            } else {
                Vec::new()
            };
            return (servers, uri);
        }
        let (resources, templates) = tokio::join!(
            self.lists(ListKind::Resources),
            self.lists(ListKind::Templates)
        );
        let mut listed = None;
        for (server, pages) in &resources {
            for_each_resource(pages, |resource| {
                if listed.is_none() && resource.uri == exposed {
                    listed = Some(server.clone());
                }
            });
        }
        let has_template = |(_, pages): &&ServerList| {
            let mut pages = pages.pages.iter();
            pages.any(|page| {
                let page = types::decode::<ListResourceTemplatesResult<'_>>(page.raw()).ok();
                page.is_some_and(|page| {
                    let mut templates = page.resource_templates.iter();
                    templates.any(|template| may_match(template, exposed))
                })
            })
        };
        if let Some(server) = listed {
            return (vec![server], exposed.to_owned());
        }
        let (likely, others): (Vec<_>, Vec<_>) = templates.iter().partition(has_template);
        let order = likely.into_iter().chain(others);
        let servers = order.map(|(server, _)| server.clone()).collect();
        (servers, exposed.to_owned())
    }

    /// The URI under which clients know a resource of a server.
    pub(super) async fn exposed_uri(&self, server: &ServerName, uri: &str) -> String {
        if self.transparent.is_some() {
            return uri.to_owned();
        }
        let (owners, _) = self.find_resource(uri).await;
        match owners.first() {
            Some(owner) if owner != server => qualified(server, uri),
            _ => uri.to_owned(),
        }
    }

    /// The instructions of all servers, each under its name, for as long as they fit.
    pub(super) fn instructions(&self) -> Option<String> {
        let catalog = self.host.catalog();
        if let Some(server) = &self.transparent {
            let server = catalog.server(server.as_str())?;
            return server.instructions().map(str::to_owned);
        }
        let mut text = String::new();
        if let Some(own) = self
            .profile()
            .and_then(|profile| profile.instructions.clone())
        {
            text = format!("{}\n\n", own.trim());
        }
        let mut left_out = 0;
        let servers = catalog.servers().iter();
        for server in servers.filter(|server| self.has_server(server.name())) {
            let Some(instructions) = server.model_instructions() else {
                continue;
            };
            let part = format!("# {}\n\n{}\n\n", server.name(), instructions.trim());
            if text.len() + part.len() > MAX_INSTRUCTIONS {
                left_out += 1;
                continue;
            }
            text.push_str(&part);
        }
        if left_out > 0 {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "(The instructions of {left_out} more servers are left out.)"
            );
        }
        let text = text.trim_end();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// How long a client may cache a merged list: the shortest time of its parts. A server that states none, and does not
    /// announce changes either, has a part that may not be cached.
    fn lifetime(&self, kind: ListKind, lists: &[ServerList]) -> Duration {
        let lifetimes = lists.iter().map(|(server, pages)| match &pages.hint {
            Some(hint) => hint.time_to_live,
            None if self.announces(server, kind) => LIST_LIFETIME,
            None => Duration::ZERO,
        });
        lifetimes.fold(LIST_LIFETIME, Duration::min)
    }

    fn announces(&self, server: &ServerName, kind: ListKind) -> bool {
        let Some(declared) = self.host.capabilities(server) else {
            return false;
        };
        let list = match kind {
            ListKind::Tools => declared.tools.and_then(|tools| tools.list_changed),
            ListKind::Prompts => declared.prompts.and_then(|prompts| prompts.list_changed),
            ListKind::Resources | ListKind::Templates => {
                let resources = declared.resources;
                resources.and_then(|resources| resources.list_changed)
            }
        };
        list == Some(true)
    }

    /// A list of every server that has one. Servers that cannot be listed are skipped; their status says why.
    async fn lists(&self, kind: ListKind) -> Vec<ServerList> {
        let servers = self.servers();
        let listing = servers.iter().map(|server| self.host.list(server, kind));
        let listed = join_all(listing).await;
        let mut lists = Vec::new();
        for (server, listed) in servers.into_iter().zip(listed) {
            match listed {
                Ok(pages) => lists.push((server, pages)),
                Err(error) => tracing::warn!(%server, %error, "a list is left out"),
            }
        }
        lists
    }
}

fn for_each_resource(pages: &Pages, mut visit: impl FnMut(&Resource<'_>)) {
    for page in &pages.pages {
        if let Ok(page) = types::decode::<ListResourcesResult<'_>>(page.raw()) {
            page.resources.iter().for_each(&mut visit);
        }
    }
}

fn array(items: impl Iterator<Item = String>) -> String {
    let mut text = String::from("[");
    for item in items {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text.push(']');
    text
}

/// A URI that names the server, too.
fn qualified(server: &ServerName, uri: &str) -> String {
    let mut qualified = format!("{SCHEME}://gateway");
    if let Ok(mut address) = Url::parse(&qualified) {
        if let Ok(mut path) = address.path_segments_mut() {
            path.push(server.as_str()).push(uri);
        }
        qualified = address.into();
    }
    qualified
}

fn unqualified(uri: &str) -> Option<(ServerName, String)> {
    let address = Url::parse(uri).ok().filter(|uri| uri.scheme() == SCHEME)?;
    let mut parts = address.path_segments()?.map(decoded);
    let (server, uri) = (parts.next()??, parts.next()??);
    Some((server.as_str().into(), uri))
}

/// Decodes the percent signs of a path segment; `None` if the result is not text.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = after
                .get(..2)
                .and_then(|digits| std::str::from_utf8(digits).ok())?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a URI may be made from a template: it starts and ends like it.
fn may_match(template: &ResourceTemplate<'_>, uri: &str) -> bool {
    let template: &str = &template.uri_template;
    let start = template.split('{').next().unwrap_or_default();
    let end = template.rsplit('}').next().unwrap_or_default();
    if !template.contains('{') {
        return template == uri;
    }
    uri.starts_with(start) && uri.ends_with(end) && uri.len() >= start.len() + end.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_uri_is_qualified_and_found_again() {
        let server = ServerName::from("notes 2");
        for uri in [
            "file:///a b/ü.txt",
            "demo://x?y=1#z%20",
            "ui://app/index.html",
        ] {
            let exposed = qualified(&server, uri);
            assert!(Url::parse(&exposed).is_ok(), "{exposed}");
            assert_eq!(
                unqualified(&exposed),
                Some((server.clone(), uri.to_owned()))
            );
        }
        assert_eq!(unqualified("file:///a"), None);
        assert_eq!(unqualified("switchboard://gateway/only"), None);
    }

    #[test]
    fn uris_are_compared_with_templates() {
        let check = |template: &str, uri: &str, expected: bool| {
            let template = ResourceTemplate::new(template.to_owned().into(), "x".into());
            assert_eq!(may_match(&template, uri), expected, "{uri}");
        };
        check("demo://text/{id}", "demo://text/1", true);
        check("demo://text/{id}", "demo://blob/1", false);
        check("demo://{a}/end", "demo://x/end", true);
        check("demo://{a}/end", "demo://x/other", false);
        check("demo://plain", "demo://plain", true);
        check("demo://plain", "demo://plainer", false);
    }
}
