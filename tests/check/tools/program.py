import argparse


def words(text):
    return text.split()


def main():
    print(words(argparse.ArgumentParser().parse_args()))


if __name__ == "__main__":
    main()
