//! What a Rust file defines: names with their lines, lengths of functions, matches with a wildcard.

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::{
    Attribute, Ident, Pat,
    spanned::Spanned,
    visit::{self, Visit},
};

/// One parsed Rust file.
pub(super) struct RustFile {
    pub(super) path: String,
    pub(super) definitions: Vec<Definition>,
    pub(super) functions: Vec<FunctionLength>,
    /// Lines of `_ =>` arms beside arms that name variants.
    pub(super) wildcards: Vec<usize>,
    /// Modules in files of their own that exist in tests only, as paths without `.rs`.
    test_modules: Vec<String>,
}

/// A name that the file gives to something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) kind: DefinitionKind,
    pub(super) name: String,
    pub(super) line: usize,
    /// Whether it is compiled for the unit tests of its crate only.
    pub(super) in_tests: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefinitionKind {
    Function,
    Type,
    Variant,
    Field,
    Module,
    Constant,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FunctionLength {
    pub(super) name: String,
    pub(super) line: usize,
    /// Lines from the signature to the closing brace; documentation and attributes do not count.
    pub(super) lines: usize,
}

impl RustFile {
    /// Parses a file.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self> {
        let file = syn::parse_file(text).with_context(|| path.to_owned())?;
        let mut reader = Reader {
            source: Self {
                path: path.to_owned(),
                definitions: Vec::new(),
                functions: Vec::new(),
                wildcards: Vec::new(),
                test_modules: Vec::new(),
            },
            in_tests: false,
            of_a_trait: false,
        };
        reader.visit_file(&file);
        Ok(reader.source)
    }

    /// Returns the folder in which the modules of this file are, as a path.
    fn folder_of_modules(&self) -> String {
        let without = self.path.trim_end_matches(".rs");
        let (folder, name) = without.rsplit_once('/').unwrap_or(("", without));
        if matches!(name, "lib" | "main" | "mod") { folder.to_owned() } else { without.to_owned() }
    }
}

/// Marks the definitions of files that a `#[cfg(test)] mod name;` elsewhere brings in.
pub(super) fn without_tests_of_others(mut sources: Vec<RustFile>) -> Vec<RustFile> {
    let modules: Vec<String> = sources.iter().flat_map(|source| source.test_modules.clone()).collect();
    let is_test = |path: &str| {
        modules.iter().any(|module| {
            path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    };
    for source in sources.iter_mut().filter(|source| is_test(&source.path)) {
        source.definitions.iter_mut().for_each(|definition| definition.in_tests = true);
    }
    sources
}

/// Walks a file. A method of a trait's implementation is not a definition: the trait chose its name.
struct Reader {
    source: RustFile,
    in_tests: bool,
    of_a_trait: bool,
}

impl Reader {
    fn define(&mut self, kind: DefinitionKind, name: &Ident) {
        let (name, line) = (name.to_string().trim_start_matches("r#").to_owned(), line_of(name.span()));
        self.source.definitions.push(Definition { kind, name, line, in_tests: self.in_tests });
    }

    fn function(&mut self, name: &Ident, first: Span, body: Span) {
        let line = line_of(first);
        let lines = body.end().line + 1 - line;
        self.source.functions.push(FunctionLength { name: name.to_string(), line, lines });
    }

    /// Finds functions in the arguments of a macro, which need not be Rust.
    fn functions_in(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.functions_in(group.stream());
            }
            let (TokenTree::Ident(keyword), Some(TokenTree::Ident(name))) = (token, tokens.get(index + 1))
            else {
                continue;
            };
            let body = tokens[index..].iter().find_map(|token| match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.span()),
                _ => None,
            });
            if let (true, Some(body)) = (keyword == "fn", body) {
                self.define(DefinitionKind::Function, name);
                self.function(name, keyword.span(), body);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(&item.attrs);
        self.define(DefinitionKind::Function, &item.sig.ident);
        self.function(&item.sig.ident, item.sig.span(), item.block.span());
        visit::visit_item_fn(self, item);
        self.in_tests = outside;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !self.of_a_trait {
            self.define(DefinitionKind::Function, &item.sig.ident);
        }
        self.function(&item.sig.ident, item.sig.span(), item.block.span());
        let of_a_trait = std::mem::replace(&mut self.of_a_trait, false);
        visit::visit_impl_item_fn(self, item);
        self.of_a_trait = of_a_trait;
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.define(DefinitionKind::Function, &item.sig.ident);
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, item.sig.span(), block.span());
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outside = (self.in_tests, self.of_a_trait);
        self.in_tests |= is_for_tests(&item.attrs);
        self.of_a_trait = item.trait_.is_some();
        visit::visit_item_impl(self, item);
        (self.in_tests, self.of_a_trait) = outside;
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(&item.attrs);
        self.define(DefinitionKind::Module, &item.ident);
        if self.in_tests && item.content.is_none() {
            let module = format!("{}/{}", self.source.folder_of_modules(), item.ident);
            self.source.test_modules.push(module);
        }
        visit::visit_item_mod(self, item);
        self.in_tests = outside;
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(&item.attrs);
        self.define(DefinitionKind::Type, &item.ident);
        visit::visit_item_struct(self, item);
        self.in_tests = outside;
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(&item.attrs);
        self.define(DefinitionKind::Type, &item.ident);
        visit::visit_item_enum(self, item);
        self.in_tests = outside;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(&item.attrs);
        self.define(DefinitionKind::Type, &item.ident);
        visit::visit_item_trait(self, item);
        self.in_tests = outside;
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(&item.attrs);
        self.define(DefinitionKind::Type, &item.ident);
        self.in_tests = outside;
    }

    fn visit_variant(&mut self, item: &'ast syn::Variant) {
        self.define(DefinitionKind::Variant, &item.ident);
        visit::visit_variant(self, item);
    }

    fn visit_field(&mut self, item: &'ast syn::Field) {
        if let Some(name) = &item.ident {
            self.define(DefinitionKind::Field, name);
        }
        visit::visit_field(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if item.ident != "_" {
            self.define(DefinitionKind::Constant, &item.ident);
        }
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.define(DefinitionKind::Constant, &item.ident);
        visit::visit_item_static(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        // What a macro generates is not ours to read: the definition of a macro is left out.
        if item.ident.is_none() {
            self.functions_in(item.mac.tokens.clone());
        }
    }

    fn visit_expr_match(&mut self, item: &'ast syn::ExprMatch) {
        let names_variants = item.arms.iter().any(|arm| names_a_variant(&arm.pat));
        let wild = item.arms.iter().filter(|arm| matches!(arm.pat, Pat::Wild(_)) && names_variants);
        self.source.wildcards.extend(wild.map(|arm| line_of(arm.pat.span())));
        visit::visit_expr_match(self, item);
    }
}

fn line_of(span: Span) -> usize {
    span.start().line
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let tokens = list.tokens.to_string();
                tokens == "test" || tokens.replace(' ', "").starts_with("all(test")
            })
    })
}

/// Tells whether a pattern names a variant of an enum other than `Option` and `Result`.
fn names_a_variant(pattern: &Pat) -> bool {
    let path = match pattern {
        Pat::TupleStruct(pattern) => &pattern.path,
        Pat::Struct(pattern) => &pattern.path,
        Pat::Path(pattern) => &pattern.path,
        Pat::Or(pattern) => return pattern.cases.iter().any(names_a_variant),
        Pat::Reference(pattern) => return names_a_variant(&pattern.pat),
        Pat::Paren(pattern) => return names_a_variant(&pattern.pat),
        Pat::Ident(pattern) => {
            return pattern.subpat.as_ref().is_some_and(|(_, pattern)| names_a_variant(pattern));
        }
        _ => return false,
    };
    let last = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let is_constant = last.chars().all(|c| !c.is_lowercase()) && last.len() > 1;
    !is_constant && !matches!(last.as_str(), "Some" | "None" | "Ok" | "Err")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> RustFile {
        RustFile::parse("a/src/lib.rs", text).unwrap()
    }

    fn names(text: &str, kind: DefinitionKind) -> Vec<String> {
        let definitions = source(text).definitions;
        definitions.into_iter().filter(|one| one.kind == kind).map(|one| one.name).collect()
    }

    #[test]
    fn every_kind_of_definition_is_found() {
        let text =
            "mod m { struct S { f: u8 } enum E { V { g: u8 } } trait T { fn t(); type A; } type Y = u8; }
            const C: u8 = 1; static D: u8 = 1; fn a() { fn b() {} } impl S { fn c() {} }";
        assert_eq!(names(text, DefinitionKind::Type), ["S", "E", "T", "Y"]);
        assert_eq!(names(text, DefinitionKind::Field), ["f", "g"]);
        assert_eq!(names(text, DefinitionKind::Variant), ["V"]);
        assert_eq!(names(text, DefinitionKind::Module), ["m"]);
        assert_eq!(names(text, DefinitionKind::Constant), ["C", "D"]);
        assert_eq!(names(text, DefinitionKind::Function), ["t", "a", "b", "c"]);
    }

    #[test]
    fn the_trait_chose_the_names_of_its_implementation() {
        assert!(names("impl T for S { fn visit(&self) {} }", DefinitionKind::Function).is_empty());
        assert_eq!(source("impl T for S { fn visit(&self) {} }").functions.len(), 1);
    }

    #[test]
    fn functions_in_the_arguments_of_a_macro_are_found() {
        let text =
            "claims! { async fn a_claim(stage) { stage.run(); } }\nmacro_rules! m { () => { fn no() {} } }";
        assert_eq!(names(text, DefinitionKind::Function), ["a_claim"]);
    }

    #[test]
    fn a_function_is_as_long_as_its_signature_and_its_body() {
        let text = "/// Doc.\n#[inline]\nfn a(\n    b: u8,\n) {\n}\n";
        assert_eq!(source(text).functions, [FunctionLength { name: "a".into(), line: 3, lines: 4 }]);
    }

    #[test]
    fn tests_are_told_apart_also_in_files_of_their_own() {
        let definitions = source("#[cfg(test)] mod tests { struct S; } struct S;").definitions;
        assert_eq!(definitions.iter().map(|one| one.in_tests).collect::<Vec<_>>(), [true, true, false]);
        let outside = RustFile::parse("a/src/lib.rs", "#[cfg(test)] mod tests;").unwrap();
        let inside = RustFile::parse("a/src/tests/deep.rs", "struct S;").unwrap();
        let sources = without_tests_of_others(vec![outside, inside]);
        assert!(sources[1].definitions[0].in_tests);
    }

    #[test]
    fn a_wildcard_counts_beside_variants_only() {
        assert_eq!(source("fn a() { match b { Kind::One => 1, _ => 2 }; }").wildcards, [1]);
        assert!(source("fn a() { match b { Some(_) => 1, _ => 2 }; }").wildcards.is_empty());
        assert!(source("fn a() { match b { 1 | 2 => 1, LIMIT => 3, _ => 2 }; }").wildcards.is_empty());
    }
}
