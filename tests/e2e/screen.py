"""A small model of a terminal: what a user sees of a program's output.

It supports what this program and libedit use of ANSI terminals: wrapping with a cursor that waits in the last column,
wide and combining characters, moving, clearing, scrolling, and cursor position queries. On a resize it either reflows
its rows, as most terminals do, or truncates them, as xterm does.
"""

import re
import unicodedata

_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b[()][A-Z0-9]|\x1b[=>78]")


def width(character):
    """Columns of a character; 0 for a combining one."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    def __init__(self, rows, columns, rewraps=True, answers=True):
        self.rows, self.columns, self.rewraps, self.answers = rows, columns, rewraps, answers
        self.cells = [self._row()]  # lists of cells; "" is the second half of a wide character
        self.wrapped = [False]      # whether a row continues in the next one
        self.row = self.column = 0
        self._rest = ""
        self.replies = b""          # the terminal's replies to the program

    def _row(self):
        return [" "] * self.columns

    def lines(self):
        """The rows on the screen without trailing blanks; empty rows at the end are omitted."""
        lines = ["".join(cells).rstrip() for cells in self.cells[-self.rows:]]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def cursor(self):
        """(row, column) on the screen."""
        return self.row - max(0, len(self.cells) - self.rows), min(self.column, self.columns - 1)

    def feed(self, text):
        text = self._rest + text
        self._rest = ""
        while text:
            found = _SEQUENCE.match(text)
            if found:
                if found[2]:
                    self._control(found[1], found[2])
                text = text[found.end():]
            elif text[0] == "\x1b" and len(text) < 16 and not re.match(r"\x1b\[[0-9;?]*[^0-9;?]", text):
                self._rest = text
                return
            else:
                self._put(text[0])
                text = text[1:]

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down(False)
        elif character == "\b":
            self.column = max(0, min(self.column, self.columns - 1) - 1)
        elif character >= " ":
            self._print(character)

    def _print(self, character):
        n = width(character)
        if n == 0:
            at = self.column - 1
            while at > 0 and self.cells[self.row][at] == "":
                at -= 1
            if at >= 0:
                self.cells[self.row][at] += character
            return
        if self.column + n > self.columns:
            self._down(True)
            self.column = 0
        cells = self.cells[self.row]
        for at in range(self.column, self.column + n):
            self._break_wide(cells, at)
        cells[self.column:self.column + n] = [character] + [""] * (n - 1)
        self.column += n

    def _break_wide(self, cells, at):
        """Overwriting half of a wide character blanks the other half."""
        if cells[at] == "" and at > 0:
            cells[at - 1] = " "
        if at + 1 < len(cells) and cells[at + 1] == "":
            cells[at + 1] = " "

    def _down(self, wrapped):
        self.wrapped[self.row] = wrapped
        self.row += 1
        if self.row == len(self.cells):
            self.cells.append(self._row())
            self.wrapped.append(False)

    def _control(self, parameters, final):
        number = int(parameters) if parameters.isdigit() else 0
        top = max(0, len(self.cells) - self.rows)
        if final == "A":
            self.row = max(top, self.row - max(1, number))
        elif final == "B":
            self.row = min(len(self.cells) - 1, self.row + max(1, number))
        elif final == "C":
            self.column = min(self.columns - 1, self.column + max(1, number))
        elif final == "D":
            self.column = max(0, min(self.column, self.columns - 1) - max(1, number))
        elif final == "G":
            self.column = min(self.columns, max(1, number)) - 1
        elif final == "H":
            self.row, self.column = top, 0
        elif final == "K":
            self.cells[self.row][self.column:] = [" "] * (self.columns - min(self.column, self.columns))
        elif final == "J":
            self.cells[self.row][self.column:] = [" "] * (self.columns - min(self.column, self.columns))
            for row in range(self.row + 1, len(self.cells)):
                self.cells[row] = self._row()
            self.wrapped[self.row:] = [False] * (len(self.cells) - self.row)
            if parameters == "2":
                for row in range(top, len(self.cells)):
                    self.cells[row] = self._row()
        elif final == "P":
            del self.cells[self.row][self.column:self.column + max(1, number)]
            self.cells[self.row] += [" "] * (self.columns - len(self.cells[self.row]))
        elif final == "@":
            self.cells[self.row][self.column:self.column] = [" "] * max(1, number)
            del self.cells[self.row][self.columns:]
        elif final == "n" and parameters == "6" and self.answers:
            row, column = self.cursor()
            self.replies += f"\x1b[{row + 1};{column + 1}R".encode()

    def resize(self, rows, columns):
        self.rows = rows
        if not self.rewraps:
            self.columns = columns
            for cells in self.cells:
                del cells[columns:]
                cells += [" "] * (columns - len(cells))
            self.column = min(self.column, columns - 1)
            return
        lines, at = [[]], 0  # rows joined into lines; the cursor's offset in its line
        for i, cells in enumerate(self.cells):
            if i == self.row:
                line, at = len(lines) - 1, len(lines[-1]) + self.column
            used = len(cells)
            # A column left empty by a wide character is not part of the line.
            if self.wrapped[i] and cells[-1] == " " and "" in self.cells[i + 1][:2]:
                used -= 1
            lines[-1] += cells[:used]
            if not self.wrapped[i]:
                lines.append([])
        self.columns, self.cells, self.wrapped = columns, [], []
        for i, cells in enumerate(lines[:-1]):
            keep = max(len("".join(c or "\0" for c in cells).rstrip(" ")), at if i == line else 0)
            self._lay_out(cells[:keep], at if i == line else None)

    def _lay_out(self, cells, cursor):
        row = []
        for i, cell in enumerate(cells + [None]):
            wide = cell is not None and i + 1 < len(cells) and cells[i + 1] == ""
            needed = 2 if wide else 1 if cell is not None or i == cursor else 0
            if len(row) + needed > self.columns:
                self.cells.append((row + [" "] * self.columns)[:self.columns])
                self.wrapped.append(True)
                row = []
            if i == cursor:
                self.row, self.column = len(self.cells), len(row)
            if cell is not None:
                row.append(cell)
        self.cells.append((row + [" "] * self.columns)[:self.columns])
        self.wrapped.append(False)
