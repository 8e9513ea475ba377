//! What a path means: names are looked up in modules, through imports, from one crate of ours into another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::Item;

use super::signature::paths_in_type;
use super::source::{Module, is_public, read_crate};

/// The crates of the project that the facade can reach.
pub(crate) struct Workspace {
    crates: Vec<(String, Vec<Module>)>,
}

/// Names one item: its crate, its module, its place among the items of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Definition {
    pub(crate) crate_index: usize,
    pub(crate) module: usize,
    item: usize,
}

/// What one step of a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize, usize),
    Item(Definition),
}

/// The imports that are being followed: one that leads back to itself is not followed again.
type Followed = BTreeSet<(usize, usize, usize)>;

impl Workspace {
    /// Reads the sources of every package that the root manifest gives a path and the facade depends on.
    pub(crate) fn load() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("the root manifest");
        let facade = std::fs::read_to_string(root.join("steadfast/Cargo.toml")).expect("the manifest");
        let dependencies = facade.split("[dev-dependencies]").next().expect("a split has a first part");
        let folders: BTreeMap<&str, &str> = manifest.lines().filter_map(package_with_path).collect();
        let crates = folders
            .iter()
            .filter(|(name, _)| **name == "steadfast" || dependencies.contains(&format!("\n{name} = ")))
            .map(|(name, folder)| (name.replace('-', "_"), read_crate(&root.join(folder).join("src/lib.rs"))))
            .collect();
        Self { crates }
    }

    pub(crate) fn crate_name(&self, index: usize) -> &str {
        &self.crates[index].0
    }

    pub(crate) fn item(&self, definition: Definition) -> &Item {
        &self.module(definition.crate_index, definition.module).items[definition.item]
    }

    pub(crate) fn name(&self, definition: Definition) -> String {
        name_of(self.item(definition)).map_or_else(String::new, |(_, name)| name)
    }

    /// Every item of a crate with its module.
    pub(crate) fn items(&self, crate_index: usize) -> impl Iterator<Item = (usize, &Item)> {
        let modules = self.crates[crate_index].1.iter().enumerate();
        modules.flat_map(|(module, content)| content.items.iter().map(move |item| (module, item)))
    }

    /// Lists the items that a user of a crate can name, its public modules included.
    pub(crate) fn exports(&self, crate_name: &str) -> BTreeSet<Definition> {
        let root = self.crates.iter().position(|(name, _)| name == crate_name).expect("a crate of ours");
        let (mut exported, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![(root, 0)];
        while let Some((crate_index, module)) = open.pop() {
            if !seen.insert((crate_index, module)) {
                continue;
            }
            for target in self.public_names(crate_index, module) {
                match target {
                    Target::Module(crate_index, module) => open.push((crate_index, module)),
                    Target::Item(definition) => {
                        exported.insert(definition);
                    }
                }
            }
        }
        exported
    }

    fn public_names(&self, crate_index: usize, module: usize) -> Vec<Target> {
        let content = self.module(crate_index, module);
        let mut names: Vec<Target> = content
            .children
            .iter()
            .filter(|child| child.public)
            .map(|child| Target::Module(crate_index, child.module))
            .collect();
        for (item, declared) in content.items.iter().enumerate() {
            if name_of(declared).is_some_and(|(public, _)| public) {
                names.push(Target::Item(Definition { crate_index, module, item }));
            }
        }
        for import in content.imports.iter().filter(|import| import.public) {
            let found = self.follow(crate_index, module, &import.path, &mut Followed::new());
            match &import.name {
                Some(_) => names.extend(found),
                None => names.extend(found.into_iter().flat_map(|target| match target {
                    Target::Module(crate_index, module) => self.public_names(crate_index, module),
                    Target::Item(_) => Vec::new(),
                })),
            }
        }
        names
    }

    /// Finds the types and traits of ours that a path in a signature means. A private alias means what it
    /// stands for; a path to something foreign or generic means nothing here.
    pub(crate) fn types(&self, crate_index: usize, module: usize, path: &[String]) -> Vec<Definition> {
        let mut types = Vec::new();
        for target in self.follow(crate_index, module, path, &mut Followed::new()) {
            let Target::Item(definition) = target else { continue };
            match self.item(definition) {
                Item::Type(alias) if !is_public(&alias.vis) => {
                    let inside = paths_in_type(&alias.ty);
                    let (crate_index, module) = (definition.crate_index, definition.module);
                    types.extend(inside.iter().flat_map(|path| self.types(crate_index, module, path)));
                }
                Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Trait(_) | Item::Type(_) => {
                    types.push(definition);
                }
                _ => {}
            }
        }
        types
    }

    fn follow(
        &self,
        crate_index: usize,
        module: usize,
        path: &[String],
        followed: &mut Followed,
    ) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else {
            return vec![Target::Module(crate_index, module)];
        };
        let mut targets = self.first_step(crate_index, module, first, followed);
        for name in rest {
            let here = std::mem::take(&mut targets);
            for target in here {
                match target {
                    Target::Module(crate_index, module) if name == "super" => {
                        let parent = self.module(crate_index, module).parent.unwrap_or(0);
                        targets.push(Target::Module(crate_index, parent));
                    }
                    Target::Module(crate_index, module) => {
                        targets.extend(self.look_up(crate_index, module, name, followed));
                    }
                    // A variant or an associated item: what counts is its type.
                    Target::Item(definition) => targets.push(Target::Item(definition)),
                }
            }
        }
        targets.sort();
        targets.dedup();
        targets
    }

    fn first_step(
        &self,
        crate_index: usize,
        module: usize,
        name: &str,
        followed: &mut Followed,
    ) -> Vec<Target> {
        match name {
            "crate" => return vec![Target::Module(crate_index, 0)],
            "self" => return vec![Target::Module(crate_index, module)],
            "super" => {
                let parent = self.module(crate_index, module).parent.unwrap_or(0);
                return vec![Target::Module(crate_index, parent)];
            }
            _ => {}
        }
        let found = self.look_up(crate_index, module, name, followed);
        if !found.is_empty() {
            return found;
        }
        let other = self.crates.iter().position(|(other, _)| other == name);
        other.map(|index| Target::Module(index, 0)).into_iter().collect()
    }

    /// Finds what a name means in a module, in every namespace.
    fn look_up(&self, crate_index: usize, module: usize, name: &str, followed: &mut Followed) -> Vec<Target> {
        let content = self.module(crate_index, module);
        let mut found = Vec::new();
        for child in content.children.iter().filter(|child| child.name == name) {
            found.push(Target::Module(crate_index, child.module));
        }
        for (item, declared) in content.items.iter().enumerate() {
            if name_of(declared).is_some_and(|(_, declared)| declared == name) {
                found.push(Target::Item(Definition { crate_index, module, item }));
            }
        }
        for (number, import) in content.imports.iter().enumerate() {
            let by_name = import.name.as_deref() == Some(name);
            if !by_name && import.name.is_some() || !followed.insert((crate_index, module, number)) {
                continue;
            }
            let mut path = import.path.clone();
            if !by_name {
                path.push(name.to_owned());
            }
            found.extend(self.follow(crate_index, module, &path, followed));
            followed.remove(&(crate_index, module, number));
        }
        found
    }

    fn module(&self, crate_index: usize, module: usize) -> &Module {
        &self.crates[crate_index].1[module]
    }
}

/// Reads `name = { path = "folder", … }`.
fn package_with_path(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(" = { path = \"")?;
    Some((name, rest.split_once('"')?.0))
}

/// The name of an item, and whether it is public.
fn name_of(item: &Item) -> Option<(bool, String)> {
    let (visibility, ident) = match item {
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Union(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        Item::Const(item) => (&item.vis, &item.ident),
        Item::Static(item) => (&item.vis, &item.ident),
        Item::Fn(item) => (&item.vis, &item.sig.ident),
        _ => return None,
    };
    Some((is_public(visibility), ident.to_string()))
}
