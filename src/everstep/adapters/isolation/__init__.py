"""Killable children: a program in a process of its own, behind as many walls as the platform offers."""
