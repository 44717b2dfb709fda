"""The league: what each harness made of behaviours and of the library, as figures, Markdown and a page."""
