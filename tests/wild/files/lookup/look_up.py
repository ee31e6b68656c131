from base import WordTool


class LookUp(WordTool):
    name: str = "look_up_word"
    description: str = "Looks a word up."

    def _run(self, word: str) -> str:
        return self.words.get(word, "unknown")
