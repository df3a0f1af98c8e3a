"""Chat templates through this machine's own Jinja2, configured as in Hugging Face transformers, except that templates
may change lists and dicts."""

import datetime
import functools
import json

from harness import skip


def environment():
    """The environment; skips the test if Jinja2 is not installed."""
    try:
        import jinja2
        import jinja2.ext
        import jinja2.sandbox
    except ImportError:
        skip("no Jinja2 for Python (Debian: python3-jinja2)")

    class Generation(jinja2.ext.Extension):
        """{% generation %} ... {% endgeneration %}: the text inside."""
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body).set_lineno(line)

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                              extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


@functools.lru_cache(maxsize=1)
def compiled(env, source):
    """The template, cached: compiling one takes far longer than rendering it, and each is rendered many times."""
    return env.from_string(source)


def prompt_of(env, source, **variables):
    """The prompt, or None if the template refuses."""
    try:
        return compiled(env, source).render(**{"tools": None, "documents": None, "add_generation_prompt": True,
                                               **variables})
    except Exception:  # whatever Python raises for values that a template does not expect
        return None
