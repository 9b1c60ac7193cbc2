"""Commands about AI2-THOR's client: install, remove, path."""

from __future__ import annotations

from pathlib import Path

from scrubjay.cli.terminal import err


def install(
    commit: str | None = None,
    site_packages: Path | None = None,
    local_build: bool = False,
    replace: bool = False,
) -> None:
    """Lets unmodified AI2-THOR scripts run on Scrubjay's engine: writes it where the ai2thor package looks.

    Args:
        commit: Build that the client asks for; by default that of the ai2thor package that is found, or of 5.0.0.
        site_packages: Folder that holds the ai2thor package, if it is in another environment.
        local_build: Also for Controller(local_build=True), in the folder of the ai2thor package.
        replace: Move an installation of AI2-THOR's own aside, until `scrubjay thor remove`.
    """
    from scrubjay.thor import install as installation

    home, package = Path.home(), installation.find_client(site_packages)
    if local_build and package is None:
        raise ValueError("local_build: no ai2thor package in this environment; name its folder with --site-packages")
    build = commit or installation.client_commit(package)
    for executable in installation.install(home, build, package if local_build else None, replace):
        print(executable)
    if installation.others(home) > 1:
        err.print(
            "The client keeps three releases and may delete one of these when it starts; this command writes it again."
        )


def remove() -> None:
    """Removes what `install` wrote, and restores an installation of AI2-THOR that it had moved aside."""
    from scrubjay.thor.install import remove as remove_all

    done = remove_all(Path.home())
    for folder, what in done:
        print(f"{folder}: {what}")
    if not done:
        err.print("Nothing is installed.")


def path() -> None:
    """Prints the engine's executable, for Controller(local_executable_path=...)."""
    from scrubjay.thor.install import launcher_path

    print(launcher_path(Path.home()))
